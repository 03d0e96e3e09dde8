"""A small home, a store in a folder, and real servers for the stores that need one."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.backup_home import BackupHome, make_home
from tests.support.s3 import S3Server, run_s3_server
from tests.support.sftp import run_sftp_server

from freehold.backup import sqlite_file
from freehold.backup.stores.folder import FolderStore
from freehold.backup.stores.sftp import SftpPlace


@pytest.fixture(autouse=True)
def closed_handles() -> Iterator[None]:
    """A process of backups ends and has closed its handles. This one goes on with other homes."""
    yield
    while sqlite_file._open_handles:
        os.close(sqlite_file._open_handles.popitem()[1])


@pytest.fixture
def small_home(tmp_path: Path) -> BackupHome:
    return make_home(tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "store")


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A module that uses it is marked `shared_processes`."""
    with run_s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def sftp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SftpPlace]:
    """A module that uses it is marked `shared_processes`."""
    with run_sftp_server(tmp_path_factory.mktemp("sftp")) as place:
        yield place

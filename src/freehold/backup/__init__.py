"""Backups: an encrypted repository in a folder, in S3 or on an SFTP server, and the way back from it."""

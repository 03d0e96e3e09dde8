"""Where a repository can be: a folder, S3 and compatible services, an SFTP server, or one archive file."""

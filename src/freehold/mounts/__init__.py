"""Remote mounts: folders of S3, WebDAV and rclone remotes that the computer sees, without their keys."""

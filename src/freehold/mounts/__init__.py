"""Remote mounts: folders of S3, WebDAV, Solid pods and rclone remotes that the computer sees, without their keys."""

"""Git as a feature: the repositories of the workspace in the page. Every git command runs inside the computer."""

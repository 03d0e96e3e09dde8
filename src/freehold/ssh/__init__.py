"""SSH access: a certificate authority (certificates of at most a day), and a server that runs commands in the computer."""

"""The agents that can be installed: how each is started, installed and tried."""

"""The library: `Computer` and everything between it and the guest. Imports only the standard library and the contract."""

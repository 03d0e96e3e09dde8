"""The Nostr protocol as far as the mesh needs it: keys, events, encryption, filters. It knows nothing of Freehold."""

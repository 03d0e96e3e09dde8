"""What the gateway answers, one module a noun; each adds its routes to the application."""

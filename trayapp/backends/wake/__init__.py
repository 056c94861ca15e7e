"""Sleep, wake and network changes of this machine."""

"""What passes a watcher's records on: files, commands, messages. Each has its own thread and queue."""

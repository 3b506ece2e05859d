"""What people read: names without secrets, text that is safe to print, letters in pictures."""

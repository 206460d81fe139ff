"""Messages, calls and answers in every form that traces contain."""

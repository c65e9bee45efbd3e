"""What language identification knows of scripts, words and letters."""

"""The main job: plans chunks of input, converts them, chooses samples, writes the folder."""

"""The main job: plans chunks of input, converts them, selects samples and writes the folder."""

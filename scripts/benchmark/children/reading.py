"""Reads all sources below a folder with one reader and discards the result.

    reading.py FOLDER FORMAT

Prints the CPU seconds of recognition and of reading, and the number of conversations.
"""

import json
import sys
import time

from builder.conversation import Conversation
from builder.parallel.host import collect_seldom
from builder.problem import Problem
from builder.readers import readers, recognise
from builder.readers.discovery import find_sources


def main() -> None:
    folder, name = sys.argv[1:]
    collect_seldom()
    reader = readers()[name]
    recognising = reading = 0.0
    found = 0
    for source in find_sources(folder):
        if isinstance(source, Problem):
            continue
        started = time.process_time()
        recognise(source)
        recognised = time.process_time()
        found += sum(isinstance(event, Conversation) for event in reader.read(source))
        recognising += recognised - started
        reading += time.process_time() - recognised
    print(json.dumps({"recognising": recognising, "reading": reading, "conversations": found}))


if __name__ == "__main__":
    main()

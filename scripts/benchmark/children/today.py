"""H: what users do today to apply the chat template and tokenise finished samples.

    today.py DATASET TOKENIZER WORKERS CACHE

Prints the cost of the map alone, without start-up and loading, and the number of token ids.
"""

import json
import resource
import sys
import time
from typing import Any

import datasets
from transformers import AutoTokenizer


def cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    dataset, name, workers, cache = sys.argv[1:]
    datasets.disable_progress_bars()
    tokenizer = AutoTokenizer.from_pretrained(name)
    rows = datasets.load_dataset(dataset, split="train", cache_dir=cache)

    def ids(row: dict[str, Any]) -> dict[str, Any]:
        messages, tools = row["messages"], row["tools"] or None
        encoded: Any = tokenizer.apply_chat_template(messages, tools=tools, tokenize=True)
        return {"ids": encoded.input_ids}

    clock, used = time.perf_counter(), cpu()
    done = rows.map(
        ids, num_proc=int(workers), remove_columns=rows.column_names, load_from_cache_file=False
    )
    reported = {"seconds": time.perf_counter() - clock, "cpu": cpu() - used}
    reported["tokens"] = sum(map(len, done.with_format("arrow")["ids"]))
    print(json.dumps(reported))


if __name__ == "__main__":
    main()

# pyright: reportMissingImports=false
"""datatrove's four stages of MinHash deduplication, with one worker. Prints the processor's seconds.

    python datatrove_dedup.py FOLDER_OF_JSONL SCRATCH SHINGLE_WORDS BANDS ROWS

Runs in an environment of datatrove's own.
"""

import json
import resource
import sys

from datatrove.executor.local import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
)
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.hashing import HashConfig


def main() -> None:
    """Run the four stages one after the other."""
    folder, scratch, size, bands, rows = *sys.argv[1:3], *map(int, sys.argv[3:])
    config = MinhashConfig(
        n_grams=size,
        num_buckets=bands,
        hashes_per_bucket=rows,
        hash_config=HashConfig(precision=64, hash_fc="xxhash"),
    )
    stages = [
        ([JsonlReader(folder), MinhashDedupSignature(f"{scratch}/signatures", config)], 1),
        ([MinhashDedupBuckets(f"{scratch}/signatures", f"{scratch}/buckets", config=config)], bands),
        ([MinhashDedupCluster(f"{scratch}/buckets", f"{scratch}/remove", config=config)], 1),
        (
            [
                JsonlReader(folder),
                MinhashDedupFilter(f"{scratch}/remove"),
                JsonlWriter(f"{scratch}/unique", compression=None),
            ],
            1,
        ),
    ]
    for number, (pipeline, tasks) in enumerate(stages):
        LocalPipelineExecutor(
            pipeline, tasks=tasks, workers=1, logging_dir=f"{scratch}/logs/{number}", skip_completed=False
        ).run()
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(json.dumps({"seconds": sum(each.ru_utime + each.ru_stime for each in used)}))


if __name__ == "__main__":
    main()

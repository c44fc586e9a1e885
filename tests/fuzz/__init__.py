"""Fuzz targets: what reads input that others write, given bytes that no user would write.

Each module but `driver` and `__main__` is a target: it has a function `target(data: bytes) -> None`, which raises only
if it found a defect, and may have `seeds()`, inputs to begin with that are made and not kept. What was worth keeping is
in `corpora/<target>/`: seeds written by hand, and what a fuzzer found to lead to further code.

    python -m tests.fuzz TARGET SECONDS     guided by coverage; needs atheris

`tests/unit/test_fuzz_corpora.py` plays the corpora, and some mutations of them, with every run of the tests.
"""

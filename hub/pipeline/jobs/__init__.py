"""The jobs of the pipeline, a file each; `registry.py` lists them."""

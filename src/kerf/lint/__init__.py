"""Findings in manifests before they are applied: rules with stable codes, one function each.

Pure: documents and catalogues in, findings out. Files are read and written by the command line.
"""

"""Findings in manifests before anybody applies them: rules with stable codes, one function each.

Pure: documents and catalogues in, findings out. Files are read and written by the command line.
"""

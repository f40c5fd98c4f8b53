"""User data: the text that makes an instance join the cluster, one module for each form. Pure: text in, text out."""

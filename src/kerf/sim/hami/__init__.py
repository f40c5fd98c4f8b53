"""HAMi's stand-in: its verdicts, its extender, the server that speaks its protocol."""

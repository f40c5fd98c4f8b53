"""The formats of traces by name; `formats` reads them. It imports nothing, because help shows them."""

OPENB, DLRM, GENAI = "openb", "dlrm", "genai"
FORMATS = (OPENB, DLRM, GENAI)

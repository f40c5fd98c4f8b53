"""The forms in which findings are printed, by name; `output` writes them."""

TABLE, JSON, SARIF, GITHUB = "table", "json", "sarif", "github"
FORMS = (TABLE, JSON, SARIF, GITHUB)

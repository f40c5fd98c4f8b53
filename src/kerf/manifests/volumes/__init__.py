"""Claims, volumes, StorageClasses and CSINodes: how they are read from documents and from the API."""

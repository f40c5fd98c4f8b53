"""Claims, volumes, StorageClasses, CSINodes and VolumeAttachments: how documents and the API are read."""

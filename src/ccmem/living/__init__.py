"""What ``ccmem learn`` keeps beside a model: columns, scaling, how far files were read, the events file."""

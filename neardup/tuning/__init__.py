"""What the job would find and cost with other settings, estimated from a sample of its input.

    line_sample → survey → estimates → choices
    lines         records  candidates  settings, their costs, and the one to take
        ↳ shingle_lengths: of texts, where no length is given

In: files.
Out: costs of settings.
May import: everything before but evaluation.
"""

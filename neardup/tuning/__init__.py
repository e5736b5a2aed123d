"""What the job would find and cost with other settings, estimated from a sample of its input.

sampling → survey → estimates → choices
lines      records  meetings    settings, their costs, and the one to take
"""

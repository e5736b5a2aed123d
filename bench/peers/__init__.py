"""Adapters that run other programs on our files, most by their fastest documented path.

    python -m bench.peers.NAME FILE [--bands B --rows R] [--threshold 0.9] [--threads 2]

FILE has lines `ID SHINGLE…`, and stdout gets the pairs that the peer finds, `A TAB B` with a < b,
each once and in no order, or only the ids of flagged records where the peer says no more.  stderr
stays empty.  Without --bands and --rows a peer runs with its own default.  A peer is used by the
fastest path that its documentation names, and what it leaves to its user (reading the file,
verifying candidates) is done by our vector code, so that nothing but the peer itself is slow.
`picture_hashes` and `video_hashes` take a folder, and run programs as their users would.

The peers are no dependencies of the project: `pip install '.[bench]'`.

    reading     the file as sets, or as texts
    command     options, finding the peer, keeping it quiet
    answers     candidates → verified pairs → lines
"""

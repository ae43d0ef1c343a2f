"""Prompts of the determinism procedures: our own words, of very different lengths."""

SHORT = ["Why does the sea look blue?", "Name three uses of copper."]

STORY = (
    "The harbour master kept two clocks in his office. One had been his father's and lost four minutes a day; the "
    "other was new, ran from a wire in the wall, and was never wrong. He set the old clock by the new one each "
    "morning, and each evening he wrote down how far it had drifted, in a ledger whose first pages were in another "
    "hand. Ships came in by the new clock and sailors went to lunch by the old one. When the wire failed in the winter "
    "storm, the town found that nobody knew the hour, except that the ledger said how wrong the old clock would be on "
    "the third day without correction, and on the fourth, and so the harbour opened on time. Afterwards the council "
    "asked for a second wire. The harbour master asked for a second ledger. ")

LONG = [
    f"Write a careful report about {topic}. Begin with what is known, then what is disputed, then what should be "
    f"measured next. {STORY * k}Keep the same order in the report and use plain words throughout."
    for k, topic in enumerate(["tides", "bridges", "bread", "glass", "ink", "harbours", "clocks", "storms", "ledgers",
                               "rivers"], start=1)
]

WORDS = ("tell me about the way that old clocks lose time in winter and how a ledger of errors can make a bad clock "
         "useful again for people who must open a harbour every morning without any signal from the capital city and "
         "who would rather trust arithmetic than a wire in the wall").split()


def of_length(n, start=0):
    """A prompt of n words."""
    return " ".join(WORDS[(start + i) % len(WORDS)] for i in range(n))

/* Unicode's normalisation form C (UAX 15), with the characters that the Hugging Face `tokenizers` library
 * knows (SF_CHAR_NFC): a mark of a newer Unicode version stays where it is, whatever the machine's library
 * says. Time is linear, however many marks stand together. */
#ifndef SF_MODEL_NFC_PRIV_H
#define SF_MODEL_NFC_PRIV_H

#include "base/buf.h"

#include <stdbool.h>

/* Whether the text may change: false for nearly all texts. text is valid UTF-8. */
bool sf_nfc_needed(const char *text, size_t len);
/* Appends the normalised text. marks (may be NULL: none; then out_marks is not used) is one byte per byte of
 * text; what a character and its marks become has the mark of any of them. */
SF_CHECKED sf_code sf_nfc_append(const char *text, size_t len, const uint8_t *marks, sf_buf *out,
                                 sf_buf *out_marks, sf_err *err);

#endif

/* Character classes of the splits, as the Hugging Face `tokenizers` library has them (generated ranges, so
 * that ids do not follow the Unicode version of the machine's libraries). */
#ifndef SF_MODEL_SPLIT_PRIV_H
#define SF_MODEL_SPLIT_PRIV_H

#include <stdint.h>

typedef enum sf_char_class { SF_CHAR_OTHER, SF_CHAR_LETTER, SF_CHAR_NUMBER, SF_CHAR_SPACE } sf_char_class;

/* Of a code point from U+0080. */
sf_char_class sf_char_class_of(int32_t cp);

#endif

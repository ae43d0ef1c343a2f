#include "snippets/scale.h"

#include "nvrtc/launch.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

/* A cubin is a 64-bit ELF image. */
typedef struct image {
    const char *data;
    size_t size;
    Elf64_Ehdr head;
} image;

static bool inside(const image *i, uint64_t at, uint64_t len) {
    return at <= i->size && len <= i->size - at;
}

static bool section(const image *i, unsigned n, Elf64_Shdr *out) {
    const uint64_t at = i->head.e_shoff + (uint64_t)n * sizeof *out;
    if (n >= i->head.e_shnum || !inside(i, at, sizeof *out)) return false;
    memcpy(out, i->data + at, sizeof *out);
    return out->sh_type == SHT_NOBITS || inside(i, out->sh_offset, out->sh_size);
}

static bool named(const image *i, const Elf64_Shdr *names, uint32_t at, const char *name) {
    const size_t len = strlen(name) + 1;
    return at <= names->sh_size && len <= names->sh_size - at &&
           memcmp(i->data + names->sh_offset + at, name, len) == 0;
}

static bool find_in(const image *i, const Elf64_Shdr *table, const char *name, sf_cuda_launch *out) {
    Elf64_Shdr names, holder;
    if (!section(i, table->sh_link, &names)) return false;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym s;
        memcpy(&s, i->data + table->sh_offset + at, sizeof s);
        if (s.st_size != sizeof *out || !named(i, &names, s.st_name, name)) continue;
        if (!section(i, s.st_shndx, &holder) || holder.sh_type != SHT_PROGBITS ||
            s.st_value > holder.sh_size || s.st_size > holder.sh_size - s.st_value)
            return false;
        memcpy(out, i->data + holder.sh_offset + s.st_value, sizeof *out);
        return true;
    }
    return false;
}

bool launch_of(const void *data, size_t size, const char *kernel, sf_cuda_launch *out) {
    image i = {.data = data, .size = size};
    char name[256];
    if (size < sizeof i.head) return false;
    memcpy(&i.head, data, sizeof i.head);
    if (memcmp(i.head.e_ident, ELFMAG, SELFMAG) != 0 || i.head.e_ident[EI_CLASS] != ELFCLASS64) return false;
    snprintf(name, sizeof name, "%s_launch", kernel);
    for (unsigned n = 0; n < i.head.e_shnum; n++) {
        Elf64_Shdr s;
        if (section(&i, n, &s) && s.sh_type == SHT_SYMTAB && find_in(&i, &s, name, out)) return true;
    }
    return false;
}

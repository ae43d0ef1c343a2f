/* A mapped file that is cut while it is read. */
#ifndef SF_CLI_GUARD_H
#define SF_CLI_GUARD_H

/* From now on a read past the end of a mapping ends the program with exit code 1 and a message that names
 * path (borrowed until the end), in place of a bare SIGBUS. */
void sf_cli_guard_mapping(const char *path);

#endif

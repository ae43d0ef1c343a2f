/* Descriptors 0, 1 and 2 at the start of a program. */
#ifndef SF_BASE_FDS_H
#define SF_BASE_FDS_H

/* Puts /dev/null on those of them that are closed, so that no file opened later gets a number that others
 * write messages to. Reading stdin and writing stdout still fail then, as on a closed descriptor. */
void sf_fds_open_std(void);

#endif

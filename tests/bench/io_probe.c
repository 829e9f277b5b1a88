// The loops of the benchmark, so that no interpreter stands in the measured path.
//
//   io_probe seqwrite FILE BYTES            1 MiB writes and a final fsync
//   io_probe seqread FILE PASSES            1 MiB reads to the end; the time of the last pass
//   io_probe mmapread FILE PASSES           every line read through one mapping; the last pass
//   io_probe randread FILE OPS DEPTH SEED   4 KiB O_DIRECT reads by DEPTH threads
//   io_probe randwrite FILE OPS SEED        4 KiB buffered overwrites
//   io_probe fsyncwrite FILE OPS            4 KiB writes, an fsync after each
//   io_probe create|stat|read|delete DIR COUNT   files of 4 KiB, 10 000 per folder for many
//
// Prints the seconds of the loop alone. Exit status 1 with a line on stderr on any error.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { kPage = 4096, kBlock = 1 << 20, kPerFolder = 10000, kDepthMax = 64 };

static void die(const char* what) {
  fprintf(stderr, "io_probe: %s: %s\n", what, strerror(errno));
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static void* aligned(size_t size) {
  void* memory = NULL;
  if (posix_memalign(&memory, kPage, size) != 0) die("memory");
  uint64_t state = 88172645463325252u;
  for (size_t i = 0; i < size / 8; ++i) ((uint64_t*)memory)[i] = next_random(&state);
  return memory;
}

static int open_file(const char* path, int flags) {
  int fd = open(path, flags, 0644);
  if (fd < 0) die(path);
  return fd;
}

static uint64_t file_size(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) die("fstat");
  return (uint64_t)status.st_size;
}

static double seqwrite(const char* path, uint64_t bytes) {
  char* block = aligned(kBlock);
  double start = now();
  int fd = open_file(path, O_CREAT | O_WRONLY | O_TRUNC);
  for (uint64_t done = 0; done < bytes; done += kBlock) {
    memcpy(block, &done, sizeof done);
    if (write(fd, block, kBlock) != kBlock) die("write");
  }
  if (fsync(fd) != 0) die("fsync");
  close(fd);
  return now() - start;
}

static double seqread(const char* path, uint64_t passes) {
  char* block = aligned(kBlock);
  double start = now();
  int fd = open_file(path, O_RDONLY);
  for (uint64_t pass = 1; pass <= passes; ++pass) {
    if (pass > 1) start = now();
    if (lseek(fd, 0, SEEK_SET) != 0) die("lseek");
    ssize_t n;
    while ((n = read(fd, block, kBlock)) > 0) {
    }
    if (n < 0) die("read");
  }
  close(fd);
  return now() - start;
}

static double mmapread(const char* path, uint64_t passes) {
  double start = now();
  int fd = open_file(path, O_RDONLY);
  uint64_t size = file_size(fd), sum = 0;
  const volatile unsigned char* bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
  if (bytes == MAP_FAILED) die("mmap");
  for (uint64_t pass = 1; pass <= passes; ++pass) {
    if (pass > 1) start = now();
    for (uint64_t at = 0; at < size; at += 64) sum += bytes[at];
  }
  munmap((void*)bytes, size);
  close(fd);
  return sum == 42 ? now() - start + 1e-9 : now() - start;
}

struct Reader {
  pthread_t thread;
  const char* path;
  uint64_t ops, state;
};

static void* read_randomly(void* argument) {
  struct Reader* reader = argument;
  char* page = aligned(kPage);
  int fd = open_file(reader->path, O_RDONLY | O_DIRECT);
  uint64_t pages = file_size(fd) / kPage;
  for (uint64_t i = 0; i < reader->ops; ++i) {
    off_t at = (off_t)(next_random(&reader->state) % pages * kPage);
    if (pread(fd, page, kPage, at) != kPage) die("pread");
  }
  close(fd);
  return NULL;
}

static double randread(const char* path, uint64_t ops, unsigned depth, uint64_t seed) {
  struct Reader readers[kDepthMax];
  if (depth == 0 || depth > kDepthMax) die("depth");
  double start = now();
  for (unsigned i = 0; i < depth; ++i) {
    readers[i] = (struct Reader){0, path, ops / depth, seed * 7919 + i * 104729 + 1};
    if (pthread_create(&readers[i].thread, NULL, read_randomly, &readers[i]) != 0) die("thread");
  }
  for (unsigned i = 0; i < depth; ++i) pthread_join(readers[i].thread, NULL);
  return now() - start;
}

static double randwrite(const char* path, uint64_t ops, uint64_t seed) {
  char* page = aligned(kPage);
  int fd = open_file(path, O_RDWR);
  uint64_t pages = file_size(fd) / kPage, state = seed * 7919 + 1;
  double start = now();
  for (uint64_t i = 0; i < ops; ++i) {
    memcpy(page, &i, sizeof i);
    if (pwrite(fd, page, kPage, (off_t)(next_random(&state) % pages * kPage)) != kPage) {
      die("pwrite");
    }
  }
  double seconds = now() - start;
  close(fd);
  return seconds;
}

static double fsyncwrite(const char* path, uint64_t ops) {
  char* page = aligned(kPage);
  int fd = open_file(path, O_CREAT | O_RDWR);
  double start = now();
  for (uint64_t i = 0; i < ops; ++i) {
    memcpy(page, &i, sizeof i);
    if (pwrite(fd, page, kPage, (off_t)(i * kPage)) != kPage || fsync(fd) != 0) die("fsync");
  }
  double seconds = now() - start;
  close(fd);
  return seconds;
}

static void one_file(const char* what, const char* path, char* page) {
  if (strcmp(what, "create") == 0) {
    int fd = open_file(path, O_CREAT | O_WRONLY | O_TRUNC);
    if (write(fd, page, kPage) != kPage) die("write");
    close(fd);
  } else if (strcmp(what, "stat") == 0) {
    struct stat status;
    if (stat(path, &status) != 0) die(path);
  } else if (strcmp(what, "read") == 0) {
    int fd = open_file(path, O_RDONLY);
    if (read(fd, page, kPage) != kPage) die("read");
    close(fd);
  } else if (unlink(path) != 0) {
    die(path);
  }
}

static double files(const char* what, const char* folder, uint64_t count) {
  char* page = aligned(kPage);
  char path[4096];
  double start = now();
  for (uint64_t i = 0; i < count; ++i) {
    if (i % kPerFolder == 0) {
      snprintf(path, sizeof path, "%s/d%03llu", folder, (unsigned long long)(i / kPerFolder));
      if (strcmp(what, "create") == 0 && mkdir(path, 0755) != 0) die(path);
    }
    snprintf(path, sizeof path, "%s/d%03llu/f%07llu", folder,
             (unsigned long long)(i / kPerFolder), (unsigned long long)i);
    one_file(what, path, page);
  }
  return now() - start;
}

int main(int argc, char** argv) {
  const char* what = argc > 2 ? argv[1] : "";
  uint64_t number[3] = {0, 0, 0};
  for (int i = 3; i < argc && i < 6; ++i) number[i - 3] = strtoull(argv[i], NULL, 10);
  double seconds;
  if (strcmp(what, "seqwrite") == 0) {
    seconds = seqwrite(argv[2], number[0]);
  } else if (strcmp(what, "seqread") == 0) {
    seconds = seqread(argv[2], number[0]);
  } else if (strcmp(what, "mmapread") == 0) {
    seconds = mmapread(argv[2], number[0]);
  } else if (strcmp(what, "randread") == 0) {
    seconds = randread(argv[2], number[0], (unsigned)number[1], number[2]);
  } else if (strcmp(what, "randwrite") == 0) {
    seconds = randwrite(argv[2], number[0], number[1]);
  } else if (strcmp(what, "fsyncwrite") == 0) {
    seconds = fsyncwrite(argv[2], number[0]);
  } else if (strcmp(what, "create") == 0 || strcmp(what, "stat") == 0 ||
             strcmp(what, "read") == 0 || strcmp(what, "delete") == 0) {
    seconds = files(what, argv[2], number[0]);
  } else {
    fprintf(stderr, "io_probe: no such loop: %s\n", what);
    return 2;
  }
  printf("%.9f\n", seconds);
  return 0;
}

// The loops of the benchmark, so that no interpreter stands in the measured path.
//
//   io_probe seqwrite FILE BYTES            1 MiB writes and a final fsync
//   io_probe seqread FILE PASSES            1 MiB reads to the end; the time of the last pass
//   io_probe mmapread FILE PASSES           every line read through one mapping; the last pass
//   io_probe randread FILE OPS DEPTH SEED   4 KiB O_DIRECT reads by DEPTH threads
//   io_probe randwrite FILE OPS SEED        4 KiB buffered overwrites
//   io_probe fsyncwrite FILE OPS [WRITERS]  4 KiB writes, an fsync after each; a file each
//   io_probe create|stat|read|delete DIR COUNT [THREADS]   files of 4 KiB, 10 000 per folder for
//                                           many; of several threads each has COUNT of its own
//   io_probe serve PORT                     answers each request of 64 bytes with 4 KiB, until it
//                                           is killed
//   io_probe roundtrip ADDRESS PORT OPS     asks it, one request after the other
//
// Prints the seconds of the loop alone, in a run of several threads of all of them. Exit status 1 with a line on stderr on any error.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { kRequest = 64, kPage = 4096, kBlock = 1 << 20, kPerFolder = 10000, kDepthMax = 64 };

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

struct Worker {
  pthread_t thread;
  const char* what;
  char path[4096];
  uint64_t count;
};

// Each has `path` with its own number behind it, where there are several.
static double together(void* (*run)(void*), const char* what, const char* path, uint64_t count,
                       unsigned threads) {
  static struct Worker workers[kDepthMax];
  if (threads == 0) threads = 1;
  if (threads > kDepthMax) die("threads");
  double start = now();
  for (unsigned i = 0; i < threads; ++i) {
    struct Worker* worker = &workers[i];
    worker->what = what;
    worker->count = count;
    snprintf(worker->path, sizeof worker->path, threads > 1 ? "%s.%02u" : "%s", path, i);
    if (pthread_create(&worker->thread, NULL, run, worker) != 0) die("thread");
  }
  for (unsigned i = 0; i < threads; ++i) pthread_join(workers[i].thread, NULL);
  return now() - start;
}

static void* write_synced(void* argument) {
  struct Worker* worker = argument;
  char* page = aligned(kPage);
  int fd = open_file(worker->path, O_CREAT | O_RDWR);
  for (uint64_t i = 0; i < worker->count; ++i) {
    memcpy(page, &i, sizeof i);
    if (pwrite(fd, page, kPage, (off_t)(i * kPage)) != kPage || fsync(fd) != 0) die("fsync");
  }
  close(fd);
  return NULL;
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

static void* work_on_files(void* argument) {
  struct Worker* worker = argument;
  char* page = aligned(kPage);
  char path[4200];
  if (strcmp(worker->what, "create") == 0 && mkdir(worker->path, 0755) != 0 && errno != EEXIST)
    die(worker->path);
  for (uint64_t i = 0; i < worker->count; ++i) {
    unsigned long long folder = i / kPerFolder;
    if (i % kPerFolder == 0) {
      snprintf(path, sizeof path, "%s/d%03llu", worker->path, folder);
      if (strcmp(worker->what, "create") == 0 && mkdir(path, 0755) != 0) die(path);
    }
    snprintf(path, sizeof path, "%s/d%03llu/f%07llu", worker->path, folder, (unsigned long long)i);
    one_file(worker->what, path, page);
  }
  return NULL;
}

static int tcp_socket(const char* address, uint64_t port, struct sockaddr_in* where) {
  int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  memset(where, 0, sizeof *where);
  where->sin_family = AF_INET;
  where->sin_port = htons((uint16_t)port);
  if (fd < 0 || inet_pton(AF_INET, address, &where->sin_addr) != 1) die(address);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  return fd;
}

static int receive_all(int fd, char* bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = recv(fd, bytes + done, size - done, 0);
    if (n <= 0) return 0;
    done += (size_t)n;
  }
  return 1;
}

static void serve(uint64_t port) {
  struct sockaddr_in where;
  int one = 1, fd = tcp_socket("0.0.0.0", port, &where);
  char* page = aligned(kPage);
  char request[kRequest];
  if (bind(fd, (struct sockaddr*)&where, sizeof where) != 0 || listen(fd, 4) != 0) die("listen");
  for (;;) {
    int peer = accept(fd, NULL, NULL);
    if (peer < 0) die("accept");
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    while (receive_all(peer, request, kRequest))
      if (send(peer, page, kPage, MSG_NOSIGNAL) != kPage) break;
    close(peer);
  }
}

static double roundtrip(const char* address, uint64_t port, uint64_t ops) {
  struct sockaddr_in where;
  int fd = tcp_socket(address, port, &where);
  char* page = aligned(kPage);
  char request[kRequest] = {0};
  if (connect(fd, (struct sockaddr*)&where, sizeof where) != 0) die("connect");
  double start = now();
  for (uint64_t i = 0; i < ops; ++i)
    if (send(fd, request, kRequest, 0) != kRequest || !receive_all(fd, page, kPage)) die("peer");
  double seconds = now() - start;
  close(fd);
  return seconds;
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
    seconds = together(write_synced, what, argv[2], number[0], (unsigned)number[1]);
  } else if (strcmp(what, "create") == 0 || strcmp(what, "stat") == 0 ||
             strcmp(what, "read") == 0 || strcmp(what, "delete") == 0) {
    seconds = together(work_on_files, what, argv[2], number[0], (unsigned)number[1]);
  } else if (strcmp(what, "serve") == 0) {
    serve(strtoull(argv[2], NULL, 10));
    return 0;
  } else if (strcmp(what, "roundtrip") == 0) {
    seconds = roundtrip(argv[2], number[0], number[1]);
  } else {
    fprintf(stderr, "io_probe: no such loop: %s\n", what);
    return 2;
  }
  printf("%.9f\n", seconds);
  return 0;
}

// The real twins of Clock, Random and Disk: Linux system calls. Thread: any.
#pragma once

#include <memory>

#include "engine/env/clock.h"
#include "engine/env/disk.h"
#include "engine/env/random.h"

namespace kvsyncfs {

std::unique_ptr<Clock> make_real_clock();
std::unique_ptr<Random> make_real_random();
std::unique_ptr<Disk> make_real_disk();

}  // namespace kvsyncfs

// Runs a fuzzer without libFuzzer: over its corpus, then over seeded mutations of it. The same
// inputs each time, so that a failure can be run again.
//
// usage: <name>_fuzz CORPUS_FOLDER [MUTATIONS [SEED]]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

constexpr std::size_t kInputSizeMax = 1 << 16;

std::vector<Input> load_corpus(const char* folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code missing;  // a fuzzer may start from nothing
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Input> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  /// Some to many small harms: flipped bits, odd bytes, cuts, repeats, numbers at the edges.
  Input mutate(Input input) {
    for (std::size_t count = 1 + below(4); count > 0; --count) harm(input);
    return input;
  }

  Input noise() {
    Input input(below(512));
    for (auto& byte : input) byte = static_cast<std::uint8_t>(random_());
    return input;
  }

  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

 private:
  void harm(Input& input) {
    const std::size_t at = below(input.size());
    const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t length = below(std::min<std::size_t>(input.size() - at, 64) + 1);
    const auto end = place + static_cast<std::ptrdiff_t>(length);
    switch (input.empty() ? 5 : below(6)) {
      case 0:
        *place = static_cast<std::uint8_t>(*place ^ (1u << below(8)));
        break;
      case 1:
        *place = static_cast<std::uint8_t>(random_());
        break;
      case 2:
        input.erase(place, end);
        break;
      case 3:
        if (input.size() < kInputSizeMax) {
          const Input copy(place, end);
          input.insert(place, copy.begin(), copy.end());
        }
        break;
      case 4: {
        const std::uint8_t edge = below(2) == 0 ? 0xff : 0;
        std::fill(place, end, edge);
        break;
      }
      default:
        input.push_back(static_cast<std::uint8_t>(random_()));
    }
  }

  std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER [MUTATIONS [SEED]]\n", argv[0]);
    return 2;
  }
  const std::vector<Input> corpus = load_corpus(argv[1]);
  const unsigned long long mutations = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20'000;
  const unsigned long long seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  LLVMFuzzerTestOneInput(nullptr, 0);
  for (const Input& input : corpus) LLVMFuzzerTestOneInput(input.data(), input.size());
  Mutator mutator(seed);
  for (unsigned long long i = 0; i < mutations; ++i) {
    const bool fresh = corpus.empty() || mutator.below(8) == 0;
    const Input input =
        fresh ? mutator.noise() : mutator.mutate(corpus[mutator.below(corpus.size())]);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%zu files, %llu mutations, seed %llu\n", corpus.size(), mutations, seed);
  return 0;
}

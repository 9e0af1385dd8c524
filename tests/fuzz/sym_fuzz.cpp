// sym_fuzz [cases] [first seed] [proofs]: random cases of every property of the symbolic engine. Proofs are slow: of
// the cases, only the first `proofs` (default: a tenth) ask for them.
#include <cstdio>
#include <cstdlib>

#include "sym_property.h"

using namespace cresset::sym::testing;

int main(int argc, char** argv) {
  const uint64_t cases = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  const uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const uint64_t proofs = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : cases / 10;
  struct Property {
    const char* name;
    std::string (*check)(uint64_t);
  } const properties[] = {{"canonical form", check_canonical_form},
                          {"facts", check_facts},
                          {"index arithmetic", check_index_arithmetic},
                          {"minimized guards", check_minimized_guards},
                          {"proofs", check_proofs}};
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a failure is seen even when the run is cut short
  int failures = 0;
  for (uint64_t seed = first; seed < first + cases && failures < 5; ++seed) {
    for (const Property& property : properties) {
      if (property.check == check_proofs && seed - first >= proofs) continue;
      const std::string failure = property.check(seed);
      if (failure.empty()) continue;
      ++failures;
      std::printf("seed %llu, %s: %s\n", static_cast<unsigned long long>(seed), property.name, failure.c_str());
    }
  }
  std::printf("%llu cases from seed %llu: %d failures\n", static_cast<unsigned long long>(cases),
              static_cast<unsigned long long>(first), failures);
  return failures == 0 ? 0 : 1;
}

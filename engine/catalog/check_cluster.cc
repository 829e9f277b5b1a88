// What the catalog keeps of the nodes of a cluster. A session is known from the log alone: nothing
// else in the catalog says what a damaged record was.
#include "engine/catalog/check.h"

namespace kvsyncfs {

void CatalogCheck::visit_session(std::string_view key, std::string_view value) {
  has_sessions_ = true;
  if (key.size() == kKeyPrefixSize && decode_session(value)) return;
  problem(Mends::kNo, Of::kCatalog, 0, "the session of node {} does not decode",
          number_in_key(key, 0));
}

}  // namespace kvsyncfs

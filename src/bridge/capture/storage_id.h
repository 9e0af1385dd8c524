#pragma once

#include "base/ids.h"

namespace cresset::bridge {

// The memory of trace tensors, as a position in the capture's table of storages (storage_table.h).
using StorageId = Id<struct StorageTag>;

}  // namespace cresset::bridge

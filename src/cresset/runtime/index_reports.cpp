#include "runtime/index_reports.h"

#include <algorithm>
#include <atomic>

namespace cresset::runtime {

IndexReports::IndexReports(std::shared_ptr<GpuDevice> device, size_t sites)
    : device_(std::move(device)),
      sites_(sites),
      words_(static_cast<int64_t*>(device_->allocate_host(sites * sizeof(int64_t)))) {
  std::fill_n(words_, sites_, kNothing);
}

IndexReports::~IndexReports() {
  try {
    device_->free_host(words_);
  } catch (const DeviceError&) {
    // The device has failed, and took its memory along.
  }
}

std::optional<IndexReports::Report> IndexReports::take() {
  std::optional<Report> first;
  for (size_t site = 0; site < sites_; ++site) {
    const std::atomic_ref word(words_[site]);
    if (word.load(std::memory_order_relaxed) == kNothing) continue;
    // The device writes at any time: a report is taken and cleared at once.
    const int64_t index = word.exchange(kNothing, std::memory_order_acquire);
    if (!first) first = Report{site, index};
  }
  return first;
}

}  // namespace cresset::runtime

// Reports of indices out of range, from kernels in flight. A kernel writes such an index to the word of its site, and
// goes on with an index in range. The host reads the words when it waits for the device anyway, and raises the error.
#pragma once

#include <memory>
#include <optional>

#include "runtime/device.h"

namespace cresset::runtime {

class IndexReports {
 public:
  static constexpr int64_t kNothing = INT64_MIN;  // the contents of a word without a report

  IndexReports(std::shared_ptr<GpuDevice> device, size_t sites);
  ~IndexReports();
  IndexReports(const IndexReports&) = delete;
  IndexReports& operator=(const IndexReports&) = delete;

  void* words() const { return words_; }  // the buffer for kernels, an i64 for each site
  struct Report {
    size_t site;
    int64_t index;
  };
  // The report of the first site that has one; all words are cleared. Waits for nothing.
  std::optional<Report> take();

 private:
  const std::shared_ptr<GpuDevice> device_;
  const size_t sites_;
  int64_t* const words_;
};

}  // namespace cresset::runtime

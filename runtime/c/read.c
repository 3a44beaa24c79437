// Reads a module's file: its prefix, the CRC-32 of all parts, and where the lists of its table are.
//
// runtime/module.py has the layout of the file, and runtime/table.py that of the table.

#include "inner.h"

enum {
  PREFIX = 20,  // magic, version, bytes and CRC-32 of the header
  HEAD_WORDS = 16,  // of a table, before its lists
  COUNTS = 6,  // the first of their counts
};

static const uint8_t MAGIC[8] = MODULE_MAGIC;

static const int ENTRY_WORDS[] = {
    TENSOR_WORDS, 1, INPUT_WORDS, OUTPUT_WORDS, STEP_WORDS, 1, 1, RANGE_WORDS, SECTION_WORDS,
};

uint32_t crc32(const uint8_t *data, size_t bytes) {
  static const uint32_t NIBBLES[16] = {
      0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4,
      0x4DB26158, 0x5005713C, 0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C,
      0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C,
  };
  uint32_t crc = ~0u;
  for (size_t n = 0; n < bytes; n++) {
    crc ^= data[n];
    crc = crc >> 4 ^ NIBBLES[crc & 15];
    crc = crc >> 4 ^ NIBBLES[crc & 15];
  }
  return ~crc;
}

static int damaged(struct vdla *net, const char *what, uint32_t expected, uint32_t found) {
  struct words words;
  begin_error(net, &words);
  put(&words, what);
  put(&words, ": expected checksum ");
  put_hex(&words, expected);
  put(&words, ", found ");
  put_hex(&words, found);
  return VDLA_BAD_MODULE;
}

static int truncated(struct vdla *net, size_t bytes) {
  struct words words;
  begin_error(net, &words);
  put(&words, "module: expected more than its ");
  put_number(&words, bytes);
  put(&words, " bytes, found an end: it is truncated");
  return VDLA_BAD_MODULE;
}

// Finds the lists in a table of so many bytes.
static int find_lists(struct vdla *net, const uint8_t *table, size_t bytes) {
  size_t at = HEAD_WORDS * WORD;
  for (int list = 0; list < LISTS; list++) {
    uint32_t count = word_at(table + WORD * (COUNTS + list));
    size_t each = list == TEXTS ? 1 : WORD * (size_t)ENTRY_WORDS[list];
    if (count > (bytes - at) / each)
      return fail(net, VDLA_BAD_MODULE, "table", "lists that end within it, as long as they say",
                  count);
    net->lists[list] = (struct list){table + at, count};
    at += each * count;
  }
  struct list texts = net->lists[TEXTS];
  if (texts.count == 0 || texts.first[0] || texts.first[texts.count - 1])
    return fail_with(net, VDLA_BAD_MODULE, "table", "texts that end with zeros", "others");
  return VDLA_OK;
}

const uint8_t *section_data(const struct vdla *net, uint32_t section, size_t *bytes) {
  const uint8_t *data = net->sections;
  for (uint32_t n = 0;; n++) {
    *bytes = size_at(entry(net, SECTIONS, n, SECTION_WORDS) + WORD * SECTION_BYTES);
    if (n == section) return data;
    data += *bytes;
  }
}

// Checks that the sections are what is left of the file, whole.
static int check_sections(struct vdla *net, size_t bytes_of_file) {
  size_t left = bytes_of_file - (size_t)(net->sections - net->bytes);
  const uint8_t *data = net->sections;
  for (uint32_t n = 0; n < net->lists[SECTIONS].count; n++) {
    const uint8_t *section = entry(net, SECTIONS, n, SECTION_WORDS);
    size_t bytes = size_at(section + WORD * SECTION_BYTES);
    if (bytes > left) return truncated(net, bytes_of_file);
    uint32_t expected = word_at(section + WORD * SECTION_CRC), found = crc32(data, bytes);
    if (expected != found) return damaged(net, "a section", expected, found);
    data += bytes;
    left -= bytes;
  }
  if (left) return fail_with(net, VDLA_BAD_MODULE, "module", "an end", "more bytes");
  const uint8_t *first = net->lists[SECTIONS].first;
  if (net->lists[SECTIONS].count == 0 ||
      word_at(first + WORD * SECTION_KIND) != SECTION_IS_CONSTANTS)
    return fail_with(net, VDLA_BAD_MODULE, "module", "constants as its first section", "none");
  net->constant_bytes = size_at(first + WORD * SECTION_BYTES);
  return VDLA_OK;
}

int read_module(struct vdla *net, size_t bytes) {
  const uint8_t *file = net->bytes;
  for (size_t n = 0; n < sizeof MAGIC; n++)
    if (n >= bytes || file[n] != MAGIC[n])
      return fail_with(net, VDLA_BAD_MODULE, "module", "a vdla module", "other bytes");
  if (bytes < PREFIX) return truncated(net, bytes);
  if (word_at(file + 8) != MODULE_VERSION) {
    struct words words;
    begin_error(net, &words);
    put(&words, "module: expected format ");
    put_number(&words, MODULE_VERSION);
    put(&words, ", found format ");
    put_number(&words, word_at(file + 8));
    return VDLA_BAD_MODULE;
  }
  uint32_t header = word_at(file + 12);
  if (header > bytes - PREFIX) return truncated(net, bytes);
  uint32_t found = crc32(file + PREFIX, header);
  if (found != word_at(file + 16)) return damaged(net, "header", word_at(file + 16), found);
  const uint8_t *table = file + PREFIX + header;
  size_t left = bytes - PREFIX - header;
  if (left < HEAD_WORDS * WORD || word_at(table) > left) return truncated(net, bytes);
  size_t length = word_at(table);
  if (length < HEAD_WORDS * WORD)
    return fail(net, VDLA_BAD_MODULE, "table", "at least 64 bytes", length);
  found = crc32(table + 2 * WORD, length - 2 * WORD);
  if (found != word_at(table + WORD)) return damaged(net, "table", word_at(table + WORD), found);
  net->dram_bytes = size_at(table + 2 * WORD);
  net->isa = word_at(table + 4 * WORD);
  net->config = word_at(table + 5 * WORD);
  net->sections = table + length;
  int status = find_lists(net, table, length);
  return status ? status : check_sections(net, bytes);
}

/** Cases that fail in Berth and not in a plain container with the same limits, each with its reason. At most ten. */
export const knownDifferences: Readonly<Record<string, string>> = {
  "test.test_os.ProgramPriorityTests.test_set_get_priority":
    "init's filter lets a process change its own priority by 0 only, not by its number: it cannot recognize a keeper's number",
};

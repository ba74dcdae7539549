/** For programs in Python that edit what is there: what that is. */

/** `known()`: the files and the folders below the working directory, sorted. */
export const PYTHON_KNOWN = `
def known():
    files, folders = [], ["."]
    for top, below, names in os.walk("."):
        folders += [os.path.join(top, name) for name in below]
        files += [os.path.join(top, name) for name in names]
    return sorted(files), sorted(folders)
`;

def report()->None: "x"

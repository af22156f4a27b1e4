"""Growth: what creation and questions cost as the rows grow, by a model and by measurement."""
